package lance

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/foldline/foldline/lance/internal/pb"
)

// Folders below a table's root, and the one in which transactions of others may stand.
const (
	dataFolder        = "data"
	versionsFolder    = "_versions"
	deletionsFolder   = "_deletions"
	transactionFolder = "_transactions"
	indicesFolder     = "_indices"
	refsFolder        = "_refs"
	branchesFolder    = "tree"

	manifestSuffix   = ".manifest"
	manifestV2Length = 20 + len(manifestSuffix)
)

// join makes a store key below a table's root, which may be empty.
func join(root string, parts ...string) string {
	key := strings.Join(parts, "/")
	if root == "" {
		return key
	}
	return root + "/" + key
}

// BranchRoot is the root of a branch of the table at root, with which it is opened like any table. Its name may hold slashes.
func BranchRoot(root, branch string) string { return join(root, branchesFolder, branch) }

// mainRoot is the root of the main history that a branch's root lies in; root itself when it is none.
func mainRoot(root string) string {
	if main, _, ok := strings.Cut(root, "/"+branchesFolder+"/"); ok {
		return main
	}
	return root
}

// naming is the scheme of manifest names; a folder uses one scheme.
type naming uint8

const (
	// namingV2 inverts the version so that the newest name sorts first; we create tables with it.
	namingV2 naming = iota
	// namingV1 is the plain decimal version.
	namingV1
)

// manifestName returns the file name of a version.
func (n naming) manifestName(version uint64) string {
	if n == namingV1 {
		return strconv.FormatUint(version, 10) + manifestSuffix
	}
	return fmt.Sprintf("%020d%s", math.MaxUint64-version, manifestSuffix)
}

// parseManifestName classifies a name in the versions folder. Detached versions, staging files, hints and whatever else is
// not a version of the main history give false.
func parseManifestName(name string) (version uint64, n naming, ok bool) {
	digits, found := strings.CutSuffix(name, manifestSuffix)
	if !found || digits == "" || strings.Trim(digits, "0123456789") != "" {
		return 0, 0, false
	}
	v, err := strconv.ParseUint(digits, 10, 64)
	if err != nil {
		return 0, 0, false
	}
	if len(name) == manifestV2Length {
		return math.MaxUint64 - v, namingV2, true
	}
	return v, namingV1, true
}

// dataFileName returns a fresh unique name: three random bytes as binary digits, which spread keys over a store's
// partitions, and thirteen as hex.
func dataFileName() string {
	id := uuid.New()
	return fmt.Sprintf("%08b%08b%08b%x.lance", id[0], id[1], id[2], id[3:])
}

// deletionPath is the path of a deletion file relative to its base.
func deletionPath(fragment uint64, d *pb.DeletionFile) string {
	suffix := "arrow"
	if d.GetFileType() == pb.DeletionFile_BITMAP {
		suffix = "bin"
	}
	return fmt.Sprintf("%s/%d-%d-%d.%s", deletionsFolder, fragment, d.GetReadVersion(), d.GetId(), suffix)
}

// transactionFileUUID takes the uuid out of the name of a transaction file, "<read version>-<uuid>.txn".
func transactionFileUUID(name string) string {
	_, rest, _ := strings.Cut(name, "-")
	id, found := strings.CutSuffix(rest, ".txn")
	if !found {
		return ""
	}
	return id
}
