package deploy

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// instruments are the metric names in the code, as Prometheus spells them without unit and type.
func instruments(t *testing.T) []string {
	t.Helper()
	whole := regexp.MustCompile(`"(foldline\.[a-z_]+\.[a-z_.]+)"`)
	ingest := regexp.MustCompile(`(?:counter|seconds)\("([a-z_.]+)"`)
	var names []string
	require.NoError(t, filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range whole.FindAllStringSubmatch(string(text), -1) {
			names = append(names, strings.ReplaceAll(m[1], ".", "_"))
		}
		if strings.Contains(path, filepath.Join("internal", "ingest")) {
			for _, m := range ingest.FindAllStringSubmatch(string(text), -1) {
				names = append(names, "foldline_ingest_"+strings.ReplaceAll(m[1], ".", "_"))
			}
		}
		return err
	}))
	return names
}

var (
	inQuery = regexp.MustCompile(`foldline_[a-z_]+`)
	suffix  = regexp.MustCompile(`^(_seconds|_bytes)?(_total|_bucket|_sum|_count)?$`)
)

// checkMetrics requires that every metric of a query is one that the code makes.
func checkMetrics(t *testing.T, known []string, where, query string) {
	t.Helper()
	names := inQuery.FindAllString(query, -1)
	require.NotEmpty(t, names, where)
	for _, name := range names {
		found := slices.ContainsFunc(known, func(k string) bool {
			rest, ok := strings.CutPrefix(name, k)
			return ok && suffix.MatchString(rest)
		})
		require.True(t, found, "%s: no instrument makes %s", where, name)
	}
}

func TestAlertsAndDashboardNameRealMetrics(t *testing.T) {
	known := instruments(t)
	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr string
				Annotations map[string]string
			}
		}
	}
	read(t, "prometheus/foldline.rules.yml", &rules)
	for _, r := range rules.Groups[0].Rules {
		checkMetrics(t, known, r.Alert, r.Expr)
		require.NotEmpty(t, r.Annotations["action"], r.Alert)
	}
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	text, err := os.ReadFile("grafana/foldline.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &board))
	require.NotEmpty(t, board.Panels)
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			checkMetrics(t, known, p.Title, target.Expr)
		}
	}
}

func TestComposeIsYAML(t *testing.T) {
	var compose struct {
		Services map[string]struct{ Entrypoint []string }
	}
	read(t, "docker-compose.yml", &compose)
	for _, program := range []string{"ingester", "folder"} {
		require.Equal(t, []string{"/usr/local/bin/" + program}, compose.Services[program].Entrypoint)
		require.DirExists(t, filepath.Join("..", "cmd", program))
	}
}

func read(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, into))
}
