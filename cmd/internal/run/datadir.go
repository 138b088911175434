package run

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrInUse says that another process works on the same data directory; stop it or choose another one.
var ErrInUse = errors.New("run: the data directory is in use")

// DataDir is the directory of a development line: the graph, the log and the NATS server's files side by side.
type DataDir string

// Graph is the default root of the graph.
func (d DataDir) Graph() string { return filepath.Join(string(d), "graph") }

// WAL is the directory of the logs; each lane has one of its own below.
func (d DataDir) WAL() string { return filepath.Join(string(d), "wal") }

// Index is the directory of the folder's key index, a cache.
func (d DataDir) Index() string { return filepath.Join(string(d), "index") }

// NATS is the directory of the embedded NATS server.
func (d DataDir) NATS() string { return filepath.Join(string(d), "nats") }

func (d DataDir) urlFile() string { return filepath.Join(string(d), "nats.url") }

// ServerURL returns where the line that runs on the directory listens, "" when none has left word.
func (d DataDir) ServerURL() string {
	data, err := os.ReadFile(d.urlFile())
	if err != nil || len(data) > 1024 {
		return ""
	}
	return strings.TrimSpace(string(data))
}

func (d DataDir) setServerURL(url string) error {
	return os.WriteFile(d.urlFile(), []byte(url+"\n"), 0o644)
}

// lock takes the directory for this process, creating it when missing. The kernel gives the lock back when the process
// ends, however it ends.
func (d DataDir) lock() (unlock func() error, err error) {
	if err := os.MkdirAll(string(d), 0o755); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(string(d), "LOCK"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		holder := make([]byte, 20)
		n, _ := f.ReadAt(holder, 0)
		_ = f.Close()
		return nil, fmt.Errorf("%w: %s is held by process %s", ErrInUse, d, strings.TrimSpace(string(holder[:n])))
	}
	pid := []byte(strconv.Itoa(os.Getpid()) + "\n")
	if err := errors.Join(f.Truncate(0), writeAt(f, pid)); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("data directory: %w", err)
	}
	return f.Close, nil
}

func writeAt(f *os.File, data []byte) error {
	_, err := f.WriteAt(data, 0)
	return err
}
