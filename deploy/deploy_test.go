package deploy

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

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
