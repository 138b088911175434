package heads

import (
	"fmt"
	"strings"
)

// Where the parts of a graph are, relative to its root.
const (
	ManifestPath = "_foldline/__manifest.lance"
	HistoryPath  = "_foldline/_history.lance"
	RejectsPath  = "_foldline/_rejects.lance"
	FoldsPath    = "_foldline/folds"
)

// RejectsKey is the table key of the dead letters.
const RejectsKey = "_rejects"

// Join puts a path of the layout under root, which may be empty.
func Join(root, path string) string {
	if root == "" {
		return path
	}
	return strings.TrimSuffix(root, "/") + "/" + path
}

// TablePath is where a new table with this key lives: a name that LanceDB can open from the root.
func TablePath(key string) string { return strings.Replace(key, ":", "_", 1) + ".lance" }

// maxKeyBytes bounds a table key, so that its path stays a legal file name everywhere.
const maxKeyBytes = 120

// CheckKey refuses what is not a table key: kind and name, joined by one colon, of letters, digits, '_' and '-'.
func CheckKey(key string) error {
	kind, name, ok := strings.Cut(key, ":")
	if !ok || kind == "" || name == "" || len(key) > maxKeyBytes || kind[0] == '_' {
		return fmt.Errorf("heads: table key %q is not KIND:NAME of at most %d bytes", key, maxKeyBytes)
	}
	for _, c := range kind + name {
		if !keyRune(c) {
			return fmt.Errorf("heads: table key %q: %q is not a letter, digit, '_' or '-'", key, c)
		}
	}
	return nil
}

func keyRune(c rune) bool {
	return c == '_' || c == '-' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
