package archtest

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/foldline/foldline"

// mayImport is the table: what the product code of a package (and of the packages below it) may import
// of ours. A package that is not listed fails. Leaves of pure rules are open to all.
var mayImport = map[string][]string{
	"objstore":           {},
	"internal/keys":      {},
	"internal/options":   {},
	"internal/envelope":  {},
	"internal/rowjson":   {},
	"internal/peer":      {},
	"internal/telemetry": {},
	"wal":                {},
	"client":             {"internal/envelope"},
	"lance":              {"objstore"},
	"fence":              {"objstore", "lance"},
	"heads":              {"objstore", "lance"},
	"publisher":          {"heads", "lance", "fence", "objstore"},
	"fold":               {"wal", "lance", "fence", "publisher", "heads", "objstore"},
	"internal/ingest":    {"wal", "heads", "lance", "internal/envelope", "objstore"},
	"internal/archtest":  {},
	"internal/testkit":   {anything},
	"cmd":                {anything},
	"bench":              {anything},
	"interop":            {anything},
	"examples":           {anything},
	"deploy":             {anything},
}

// Packages that only programs may import, and those that only tests and measurements may.
var (
	anything    = "*"
	openToAll   = []string{"internal/keys", "internal/rowjson", "internal/peer", "internal/options"}
	programs    = []string{"cmd", "bench", "interop", "deploy"}
	onlyByTests = []string{
		"internal/testkit", "internal/archtest", "objstore/objstoretest", "objstore/faultstore", "objstore/faulthttp", "objstore/countstore",
	}
	measurements = []string{"bench", "interop", "internal/testkit", "objstore/objstoretest"}
)

// listed is a package with the imports of its product code, whatever their build constraints.
type listed struct {
	ImportPath string
	Imports    []string
}

// listPackages parses the tree, and does not ask the go command: files that a test reads take part in
// the decision whether its last result is still good, those that a command reads do not.
func listPackages(t *testing.T) map[string]listed {
	t.Helper()
	root := filepath.Join("..", "..")
	packages := map[string]listed{}
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			return skipDir(rel, d.Name())
		}
		if strings.HasSuffix(rel, ".go") && !strings.HasSuffix(rel, "_test.go") {
			return addImports(packages, filepath.ToSlash(filepath.Dir(rel)), path)
		}
		return nil
	}))
	return packages
}

// skipDir leaves out what the go command leaves out, other modules, and what is built or stored here.
func skipDir(rel, name string) error {
	hidden := rel != "." && (strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_"))
	if hidden || name == "testdata" || name == "node_modules" || slices.Contains([]string{"tools", "build", "data"}, rel) {
		return fs.SkipDir
	}
	return nil
}

func addImports(packages map[string]listed, pkg, path string) error {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
	if err != nil {
		return err
	}
	p := packages[pkg]
	p.ImportPath = module + "/" + pkg
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return err
		}
		p.Imports = append(p.Imports, imported)
	}
	slices.Sort(p.Imports)
	p.Imports = slices.Compact(p.Imports)
	packages[pkg] = p
	return nil
}

func TestImportsFollowTheTable(t *testing.T) {
	packages := listPackages(t)
	require.Greater(t, len(packages), 5, "too little was found to be true")
	for _, p := range packages {
		for _, fault := range check(p) {
			t.Error(fault)
		}
	}
}

// check lists what is wrong with the imports of one package.
func check(p listed) []string {
	from := relative(p.ImportPath)
	owner, ok := ownerOf(from)
	if !ok {
		return []string{fmt.Sprintf("%s is not in the table of the architecture", from)}
	}
	var faults []string
	for _, path := range p.Imports {
		if !strings.HasPrefix(path, module+"/") {
			continue
		}
		if reason := refuse(from, owner, relative(path)); reason != "" {
			faults = append(faults, fmt.Sprintf("%s imports %s: %s", from, relative(path), reason))
		}
	}
	return faults
}

// refuse is the reason why from, which belongs to owner, may not import to; empty when it may.
func refuse(from, owner, to string) string {
	target, ok := ownerOf(to)
	switch {
	case !ok:
		return "it is not in the table of the architecture"
	case under(to, onlyByTests) && !under(from, measurements) && !under(from, onlyByTests):
		return "it is for tests"
	case under(to, programs) && target != owner:
		return "nobody imports a program"
	case target == owner, under(to, openToAll):
		return ""
	case slices.Contains(mayImport[owner], anything):
		return ""
	case !slices.Contains(mayImport[owner], target):
		return fmt.Sprintf("%s may import only %v", owner, mayImport[owner])
	}
	return ""
}

// ownerOf is the longest entry of the table that holds the package.
func ownerOf(pkg string) (string, bool) {
	best := ""
	for entry := range maps.Keys(mayImport) {
		if under(pkg, []string{entry}) && len(entry) > len(best) {
			best = entry
		}
	}
	return best, best != ""
}

func under(pkg string, entries []string) bool {
	return slices.ContainsFunc(entries, func(entry string) bool {
		return pkg == entry || strings.HasPrefix(pkg, entry+"/")
	})
}

func relative(importPath string) string { return strings.TrimPrefix(importPath, module+"/") }

// The check must be able to fail.
func TestForbiddenImportsAreSeen(t *testing.T) {
	for _, c := range []struct{ from, to, fault string }{
		{"lance", "wal", "may import only"},
		{"lance/internal/file", "heads", "may import only"},
		{"wal", "objstore", "may import only"},
		{"client", "lance", "may import only"},
		{"objstore", "lance", "may import only"},
		{"publisher", "fold", "may import only"},
		{"fold", "internal/testkit", "is for tests"},
		{"cmd/foldline", "objstore/faultstore", "is for tests"},
		{"fold", "cmd/internal/run", "nobody imports a program"},
		{"fold", "novel", "not in the table"},
		{"novel", "objstore", "not in the table"},
	} {
		faults := check(listed{ImportPath: module + "/" + c.from, Imports: []string{module + "/" + c.to}})
		require.Len(t, faults, 1, "%s -> %s", c.from, c.to)
		require.Contains(t, faults[0], c.fault)
	}
	for _, c := range [][2]string{
		{"lance", "objstore"}, {"lance", "lance/internal/file"}, {"fold", "publisher"}, {"wal", "internal/keys"},
		{"cmd/ingester", "cmd/internal/run"}, {"cmd/internal/run", "internal/ingest"}, {"bench", "objstore/countstore"},
		{"internal/testkit", "objstore/faultstore"}, {"objstore/faultstore", "objstore"},
	} {
		require.Empty(t, check(listed{ImportPath: module + "/" + c[0], Imports: []string{module + "/" + c[1]}}), "%v", c)
	}
}

// The client is light: a producer links neither Arrow, nor the log, nor a store.
func TestClientIsLight(t *testing.T) {
	packages := listPackages(t)
	heavy := []string{"github.com/apache/arrow", "github.com/cockroachdb", "google.golang.org/protobuf", module + "/objstore"}
	seen := map[string]bool{}
	var visit func(pkg string)
	visit = func(pkg string) {
		if seen[pkg] {
			return
		}
		seen[pkg] = true
		for _, path := range packages[pkg].Imports {
			for _, h := range heavy {
				if strings.HasPrefix(path, h) {
					t.Errorf("%s imports %s, and client links it", pkg, path)
				}
			}
			if strings.HasPrefix(path, module+"/") {
				visit(relative(path))
			}
		}
	}
	require.Contains(t, packages, "client")
	visit("client")
}
