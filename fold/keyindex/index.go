package keyindex

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// ErrForeign: the directory holds something that is not a key index. Nothing
// was changed; choose another directory.
var ErrForeign = errors.New("keyindex: the directory is not a key index")

const (
	formatNumber      = 2
	defaultCacheBytes = 64 << 20
	memTableBytes     = 32 << 20
	bloomBits         = 10
	addressBytes      = 8
	prefixBytes       = 1 + 8 // of a row's key: kind, table id
)

var magic = []byte("FLKI")

// Options configure an Index.
type Options struct {
	// Dir is the index's own directory; required. It is created when missing.
	Dir string
	// FS is the file system; default the operating system's.
	FS vfs.FS
	// CacheBytes of blocks kept in memory. Default 64 MiB.
	CacheBytes int64
	// Logger gets builds and duplicates; nil discards.
	Logger *slog.Logger
}

// Index is the key index of all tables of one graph.
type Index struct {
	db     *pebble.DB
	logger *slog.Logger

	mu     sync.Mutex // guards tables
	tables map[uint64]*tableIndex
}

// Open opens or creates the index in a directory that one process uses at a
// time. ErrForeign when the directory is used by something else.
func Open(o Options) (*Index, error) {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.CacheBytes == 0 {
		o.CacheBytes = defaultCacheBytes
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	cache := pebble.NewCache(o.CacheBytes)
	defer cache.Unref()
	po := &pebble.Options{
		FS: o.FS, Cache: cache, FormatMajorVersion: pebble.FormatNewest, MemTableSize: memTableBytes,
		Logger: quietLogger{o.Logger},
	}
	po.EnsureDefaults()
	for i := range po.Levels {
		po.Levels[i].FilterPolicy = bloom.FilterPolicy(bloomBits)
	}
	db, err := pebble.Open(o.Dir, po)
	if err != nil {
		return nil, fmt.Errorf("keyindex: open %s: %w", o.Dir, err)
	}
	x := &Index{db: db, logger: o.Logger, tables: make(map[uint64]*tableIndex)}
	if err := x.checkFormat(); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return x, nil
}

// Close ends the index; no call may be under way.
func (x *Index) Close() error { return x.db.Close() }

// checkFormat reads the format row; an index of another number is emptied.
func (x *Index) checkFormat() error {
	want := binary.LittleEndian.AppendUint32(bytes.Clone(magic), formatNumber)
	got, closer, err := x.db.Get(formatKey)
	switch {
	case err == nil:
		got = bytes.Clone(got)
		if err := closer.Close(); err != nil {
			return err
		}
	case !errors.Is(err, pebble.ErrNotFound):
		return err
	default:
		if empty, err := x.empty(); err != nil || !empty {
			return errors.Join(ErrForeign, err)
		}
		return x.db.Set(formatKey, want, pebble.Sync)
	}
	if bytes.Equal(got, want) {
		return nil
	}
	if !bytes.HasPrefix(got, magic) {
		return ErrForeign
	}
	x.logger.Info("key index of another format is built again")
	if err := x.db.DeleteRange([]byte{0}, []byte{0xff}, pebble.NoSync); err != nil {
		return err
	}
	return x.db.Set(formatKey, want, pebble.Sync)
}

func (x *Index) empty() (bool, error) {
	it, err := x.db.NewIter(nil)
	if err != nil {
		return false, err
	}
	empty := !it.First()
	return empty, errors.Join(it.Error(), it.Close())
}

// table finds or loads the state of one table.
func (x *Index) table(id uint64) *tableIndex {
	x.mu.Lock()
	defer x.mu.Unlock()
	t := x.tables[id]
	if t == nil {
		t = &tableIndex{index: x, id: id}
		x.tables[id] = t
	}
	return t
}

var formatKey = []byte("f")

// Kinds of rows.
const (
	kindKey       = 'k'
	kindRepeated  = 'r'
	kindDeletions = 'd'
	kindPin       = 'p'
)

// prefix starts the rows of one kind of one table.
func prefix(kind byte, table uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{kind}, table)
}

func appendAddress(dst []byte, address uint64) []byte {
	return binary.LittleEndian.AppendUint64(dst, address)
}

// quietLogger passes what is wrong and leaves out the rest. After a fatal event
// Pebble must not go on: the process ends, and the index is a cache.
type quietLogger struct{ *slog.Logger }

func (quietLogger) Infof(string, ...any) {}

func (l quietLogger) Errorf(format string, args ...any) {
	l.Error("key index storage", "error", fmt.Sprintf(format, args...))
}

func (quietLogger) Fatalf(format string, args ...any) {
	panic("keyindex: " + fmt.Sprintf(format, args...))
}
