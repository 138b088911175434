package wal

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/oklog/ulid/v2"
)

// Layout of the identity file (FORMAT.md, "identity").
const (
	identityName    = "IDENTITY"
	identityMagic   = "FOLDWAL\n"
	identityVersion = 1
	identityMax     = 8 + 4 + 4 + 8 + ulid.EncodedSize + 2 + maxGraphBytes + 4
	identityMin     = identityMax - maxGraphBytes
)

// identity is whose log a directory holds. It is written once, before the
// first entry, and never changes.
type identity struct {
	Graph       string
	Lane        uint32
	Incarnation string
	Created     int64 // microseconds since 1970
}

func newIdentity(graph string, lane uint32, now time.Time) identity {
	return identity{
		Graph: graph, Lane: lane, Created: now.UnixMicro(),
		Incarnation: ulid.MustNew(ulid.Timestamp(now), ulid.DefaultEntropy()).String(),
	}
}

func (id identity) encode() []byte {
	out := append([]byte(identityMagic), 0, 0, 0, 0)
	le.PutUint32(out[8:], identityVersion)
	out = le.AppendUint32(out, id.Lane)
	out = le.AppendUint64(out, uint64(id.Created))
	out = append(out, id.Incarnation...)
	out = le.AppendUint16(out, uint16(len(id.Graph)))
	out = append(out, id.Graph...)
	return le.AppendUint32(out, checksum(out))
}

// decodeIdentity checks the magic, then the format number, then the rest, so
// that another format is told apart from damage.
func decodeIdentity(data []byte) (identity, error) {
	var id identity
	if len(data) < len(identityMagic)+4 || string(data[:len(identityMagic)]) != identityMagic {
		return id, fmt.Errorf("no %q magic", identityMagic)
	}
	c := &cursor{data: data, off: len(identityMagic)}
	if v := c.u32("format"); v != identityVersion {
		return id, fmt.Errorf("log format %d, this program reads %d: %w", v, identityVersion, ErrFormat)
	}
	if len(data) < identityMin || len(data) > identityMax {
		return id, fmt.Errorf("%d bytes", len(data))
	}
	if body := data[:len(data)-4]; checksum(body) != le.Uint32(data[len(body):]) {
		return id, errors.New("checksum does not match")
	}
	id.Lane = c.u32("lane")
	id.Created = int64(c.u64("created"))
	id.Incarnation = string(c.bytes("incarnation", ulid.EncodedSize))
	id.Graph = string(c.bytes("graph", int(c.u16("graph length"))))
	c.bytes("checksum", 4)
	c.end("identity")
	if _, err := ulid.ParseStrict(id.Incarnation); c.err == nil && err != nil {
		c.err = fmt.Errorf("incarnation: %w", err)
	}
	return id, c.err
}

// readIdentity gives the identity of a store's directory.
func readIdentity(fs vfs.FS, dir string) (identity, error) {
	path := fs.PathJoin(dir, identityName)
	data, err := readFile(fs, path, identityMax+1)
	if err != nil && !isNotExist(err) {
		return identity{}, fmt.Errorf("wal: %w", err)
	}
	var id identity
	if err == nil {
		id, err = decodeIdentity(data)
	}
	if errors.Is(err, ErrFormat) {
		return identity{}, fmt.Errorf("wal: %s: %w", path, err)
	}
	if err != nil {
		return identity{}, &CorruptError{File: path, Key: "identity", Err: err}
	}
	return id, nil
}

// writeIdentity makes the identity durable: temporary file, sync, rename, sync
// of the directory. A crash leaves none or all of it.
func writeIdentity(fs vfs.FS, dir string, id identity) error {
	return writeFile(fs, dir, identityName, id.encode())
}

func writeFile(fs vfs.FS, dir, name string, data []byte) error {
	temp, final := fs.PathJoin(dir, name+".tmp"), fs.PathJoin(dir, name)
	f, err := fs.Create(temp, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := fs.Rename(temp, final); err != nil {
		return err
	}
	return syncDir(fs, dir)
}

func syncDir(fs vfs.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// makeDir creates dir and the missing directories above it, durably.
func makeDir(fs vfs.FS, dir string) error {
	parent := fs.PathDir(dir)
	if _, err := fs.Stat(dir); err == nil || parent == dir {
		return err
	}
	if err := makeDir(fs, parent); err != nil {
		return err
	}
	if err := fs.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return syncDir(fs, parent)
}

// readFile reads a file of at most limit bytes.
func readFile(fs vfs.FS, path string, limit int64) ([]byte, error) {
	f, err := fs.Open(path)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, limit))
	return data, errors.Join(err, f.Close())
}
