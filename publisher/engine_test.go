//go:build interop

package publisher

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/objstore"
)

// engine is pylance in a process of its own: interop/foreign.py.
type engine struct {
	mu  sync.Mutex
	in  io.Writer
	out *bufio.Reader
}

// startEngine starts the interpreter that the environment names.
func startEngine(t *testing.T) *engine {
	t.Helper()
	python := os.Getenv("PYLANCE_PYTHON")
	require.NotEmpty(t, python, "make interop runs this test with PYLANCE_PYTHON")
	cmd := exec.Command(python, "../interop/foreign.py")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = in.Close()
		require.NoError(t, cmd.Wait())
	})
	return &engine{in: in, out: bufio.NewReader(out)}
}

// run makes one operation on the table at a path.
func (e *engine) run(path, operation string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := json.NewEncoder(e.in).Encode(map[string]string{"path": path, "operation": operation}); err != nil {
		return err
	}
	answer, err := e.out.ReadString('\n')
	if err == nil && answer != "ok\n" {
		err = fmt.Errorf("%s: %s", operation, answer)
	}
	return err
}

// engineOn is the engine on the graph below a directory.
type engineOn struct {
	*engine
	dir string
}

func (e engineOn) do(_ context.Context, key, operation string) error {
	return e.run(filepath.Join(e.dir, testRoot, heads.TablePath(key)), operation)
}

// TestEngineOperationBetweenTwoSteps is TestForeignOperationBetweenAnyTwoSteps with the real engine as the other program, on a directory, at the steps
// around our commits.
func TestEngineOperationBetweenTwoSteps(t *testing.T) {
	e := startEngine(t)
	runBetween(t, engineSteps, func(t *testing.T) (objstore.Store, foreignWriter) {
		dir := t.TempDir()
		store, err := objstore.Open(t.Context(), dir)
		require.NoError(t, err)
		return store, engineOn{e, dir}
	})
}

var engineSteps = []betweenStep{
	{"planned", false}, {"commit.node:Airport.before", false}, {"commit.node:Airport.after", true}, {"publish.after", true},
}

// TestEngineOperationAgainstReferences (race R13) is TestRaceR13ForeignOperations with the real engine: what it deletes, replaces or adds to a table that rows of the fold refer to.
func TestEngineOperationAgainstReferences(t *testing.T) {
	e := startEngine(t)
	for _, operation := range []string{"delete our key", "overwrite", "restore", "merge another key", "compact", "change metadata"} {
		runSkew(t, operation, func(t *testing.T) (objstore.Store, foreignWriter) {
			dir := t.TempDir()
			store, err := objstore.Open(t.Context(), dir)
			require.NoError(t, err)
			return store, engineOn{e, dir}
		})
	}
}
