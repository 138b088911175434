package publisher

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCasesHaveTheirTests: every test that CASES.md names exists, and every case of the crash and race tables is in it.
func TestCasesHaveTheirTests(t *testing.T) {
	data, err := os.ReadFile("CASES.md")
	require.NoError(t, err)
	text := string(data)
	named := regexp.MustCompile("`([a-z0-9/]+) (Test[A-Za-z0-9]+)`").FindAllStringSubmatch(text, -1)
	require.Greater(t, len(named), 60)
	for _, n := range named {
		require.True(t, hasTest(t, filepath.Join("..", n[1]), n[2]), "%s has no %s", n[1], n[2])
	}
	for i := 1; i <= 20; i++ {
		require.Contains(t, text, fmt.Sprintf("\n| C%d |", i))
		require.Regexp(t, fmt.Sprintf(`\bR%d\b`, i), text)
	}
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
