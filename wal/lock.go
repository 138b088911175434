package wal

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	holderName = "HOLDER" // who holds the lock; for people, never for decisions
	holderMax  = 4096
)

// holder names the process that has a log open.
type holder struct {
	PID   int       `json:"pid"`
	Host  string    `json:"host"`
	Since time.Time `json:"since"`
}

// lockDir takes the directory's lock, which the operating system drops when the
// process ends, and leaves the holder's name beside it.
func lockDir(fs vfs.FS, dir string, now time.Time) (io.Closer, error) {
	lock, err := fs.Lock(fs.PathJoin(dir, lockName))
	var file *os.PathError // the lock's file cannot be made, as on a read-only file system: nobody holds it
	if errors.As(err, &file) {
		return nil, fmt.Errorf("wal: lock %s: %w", dir, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s %s: %v", ErrLocked, dir, describeHolder(fs, dir), err)
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	text, err := json.Marshal(holder{PID: os.Getpid(), Host: host, Since: now})
	if err == nil {
		err = writeFile(fs, dir, holderName, text)
	}
	if vfs.IsNoSpaceError(err) {
		err = nil // it is for people; what the log itself needs is looked at next
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("wal: name the holder of %s: %w", dir, err), lock.Close())
	}
	return lock, nil
}

func describeHolder(fs vfs.FS, dir string) string {
	var h holder
	data, err := readFile(fs, fs.PathJoin(dir, holderName), holderMax)
	if err != nil || json.Unmarshal(data, &h) != nil {
		return "(holder unknown)"
	}
	return fmt.Sprintf("(pid %d on %q since %s)", h.PID, h.Host, h.Since.Format(time.RFC3339))
}

func isNotExist(err error) bool { return oserror.IsNotExist(err) }
