package publisher

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCasesHaveTheirTests: every test that CASES.md names exists, and every case of the crash and race tables is in it.
func TestCasesHaveTheirTests(t *testing.T) {
	text := requireNamedTests(t, "CASES.md", 60)
	for i := 1; i <= 20; i++ {
		require.Contains(t, text, fmt.Sprintf("\n| C%d |", i))
		require.Regexp(t, fmt.Sprintf(`\bR%d\b`, i), text)
	}
}

// TestReportsHaveTheirTests: every test that docs/field-reports.md names exists, and every report that a test names is in it.
func TestReportsHaveTheirTests(t *testing.T) {
	text := requireNamedTests(t, filepath.Join("..", "docs", "field-reports.md"), 60)
	ids := regexp.MustCompile(`C[0-9]+`)
	named := regexp.MustCompile(`[Rr]eports? ?C[0-9]+((, | and )C[0-9]+)*|func TestReport(C[0-9]+)+`)
	require.NoError(t, filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		data, err := os.ReadFile(path)
		for _, mention := range named.FindAllString(string(data), -1) {
			for _, id := range ids.FindAllString(mention, -1) {
				require.True(t, strings.Contains(text, "\n| "+id+" |"), "%s is not in the document; %s names it", id, path)
			}
		}
		return err
	}))
}

// requireNamedTests gives a document whose named tests all exist.
func requireNamedTests(t *testing.T, document string, atLeast int) string {
	t.Helper()
	data, err := os.ReadFile(document)
	require.NoError(t, err)
	named := regexp.MustCompile("`([a-z0-9/]+) (Test[A-Za-z0-9]+)`").FindAllStringSubmatch(string(data), -1)
	require.Greater(t, len(named), atLeast)
	for _, n := range named {
		require.True(t, hasTest(t, filepath.Join("..", n[1]), n[2]), "%s has no %s", n[1], n[2])
	}
	return string(data)
}

func hasTest(t *testing.T, dir, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	require.NoError(t, err)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		if strings.Contains(string(data), "\nfunc "+name+"(") {
			return true
		}
	}
	return false
}
