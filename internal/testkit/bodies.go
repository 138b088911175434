package testkit

import (
	"bytes"
	"iter"
	"runtime/metrics"
	"slices"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/stretchr/testify/require"
)

// Body is a valid body of a message, to be damaged.
type Body struct {
	Name string
	Data []byte
	// Bounds are lengths at which a part of the body ends: a truncation there is the least visible.
	Bounds []int
	// Scratch is what a library allocates once to decode such a body, whatever its size.
	Scratch int
}

// lz4Scratch is the largest block of an LZ4 frame, which its reader keeps in a pool, and a second one that a pool under the race detector loses.
const lz4Scratch = 2 * (4 << 20)

// maxCuts bounds the places at which a stream is cut.
const maxCuts = 128

// ArrowBodies are streams of three rows and more of a schema: one batch, batches with empty ones between them, none at all, compressed ones,
// and strings by dictionaries, sent once, replaced and extended.
func ArrowBodies(t testing.TB, s *arrow.Schema) []Body {
	t.Helper()
	few, more, none := SampleRecord(s, 3), SampleRecord(s, 3), SampleRecord(s, 0)
	coded := byDictionaries(s)
	batches := []arrow.Record{SampleRecord(coded, 2), SampleRecord(coded, 0), SampleRecord(coded, 3)}
	longer := []arrow.Record{batches[0], batches[2]} // the second dictionary begins with the first
	body := func(name string, records []arrow.Record, options ...ipc.Option) Body {
		b := Body{Name: name, Data: ArrowStream(t, records, options...)}
		for at := 0; at < len(b.Data); at += 8 * max(1, len(b.Data)/8/maxCuts) {
			b.Bounds = append(b.Bounds, at)
		}
		return b
	}
	lz4 := body("lz4", []arrow.Record{few, more}, ipc.WithLZ4())
	lz4.Scratch = lz4Scratch
	return []Body{
		body("plain", []arrow.Record{few}),
		body("empty batches", []arrow.Record{none, few, none, more}),
		body("no rows", []arrow.Record{none}),
		body("zstd", []arrow.Record{few, more}, ipc.WithZstd()),
		lz4,
		body("dictionaries", batches),
		body("dictionaries extended", longer, ipc.WithDictionaryDeltas(true)),
		body("dictionaries by zstd", batches, ipc.WithZstd()),
	}
}

// byDictionaries is a schema whose columns of strings and bytes are coded by dictionaries.
func byDictionaries(s *arrow.Schema) *arrow.Schema {
	fields := slices.Clone(s.Fields())
	for i, f := range fields {
		if f.Type.ID() == arrow.STRING || f.Type.ID() == arrow.BINARY {
			fields[i].Type = &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: f.Type}
		}
	}
	return arrow.NewSchema(fields, nil)
}

// JSONBody is a body of lines; each byte of it is a place to cut.
func JSONBody(name, lines string) Body {
	b := Body{Name: name, Data: []byte(lines)}
	for at := range b.Data {
		b.Bounds = append(b.Bounds, at)
	}
	return b
}

// Damaged yields a body with one bit of it flipped, each step-th in turn, then with whole bytes turned around, and then cut at each of its bounds. What is
// yielded is valid until the next.
func Damaged(b Body, step int) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		data := bytes.Clone(b.Data)
		flip := func(at int, mask byte) bool {
			data[at] ^= mask
			defer func() { data[at] ^= mask }()
			return yield(data)
		}
		for bit := 0; bit < 8*len(data); bit += step {
			if !flip(bit/8, 1<<(bit%8)) {
				return
			}
		}
		for at := 0; at < len(data); at += step {
			if !flip(at, 0xff) {
				return
			}
		}
		for _, at := range b.Bounds {
			if !yield(data[:at]) {
				return
			}
		}
	}
}

// seedsOfABody bounds what a fuzz target begins with: every seed runs in each plain test too.
const seedsOfABody = 16

// Seeds yields a body and a few of its damaged forms, spread over all of them, for a fuzz target. The slices are the caller's.
func Seeds(b Body) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		if !yield(bytes.Clone(b.Data)) {
			return
		}
		step := max(8*len(b.Data)/seedsOfABody, 1) | 1 // odd: all bits of a byte have their turn
		every, n := max(len(b.Bounds)/seedsOfABody, 1), 0
		thin := Body{Data: b.Data}
		for i := every / 2; i < len(b.Bounds); i += every {
			thin.Bounds = append(thin.Bounds, b.Bounds[i])
		}
		for data := range Damaged(thin, step) {
			if n++; n > 3*seedsOfABody || !yield(bytes.Clone(data)) {
				return
			}
		}
	}
}

// Bounds of RequireBoundedDecode.
const (
	decodeBytesPerByte = 16
	decodeBytes        = 1 << 20
)

// RequireBoundedDecode feeds a decoder the body and its damaged forms, each step-th. None may panic or allocate more than 16 bytes for each of the
// body's, the limit that the decoder has for the rows of a message, the body's Scratch, and 1 MiB. The whole body has to be accepted, and some of the others refused.
// Nothing else may run meanwhile.
func RequireBoundedDecode(t testing.TB, b Body, step, limit int, decode func([]byte) error) {
	t.Helper()
	require.NoError(t, decode(b.Data), b.Name)
	bound := uint64(decodeBytesPerByte*len(b.Data) + limit + b.Scratch + decodeBytes)
	accepted, refused, most := 0, 0, uint64(0)
	before := allocatedBytes()
	for data := range Damaged(b, step) {
		if decode(data) == nil {
			accepted++
		} else {
			refused++
		}
		now := allocatedBytes()
		if most = max(most, now-before); most > bound {
			t.Fatalf("%s: %d bytes allocated, %d may be, for %x", b.Name, most, bound, data)
		}
		before = now
	}
	require.Positive(t, refused, b.Name)
	t.Logf("%s of %d bytes: %d damaged forms refused, %d read as other values, at most %d bytes allocated of %d", b.Name, len(b.Data), refused, accepted, most, bound)
}

// allocatedBytes is what the process has allocated so far. Unlike runtime.ReadMemStats it does not stop the world; it lags by a few spans of small objects.
func allocatedBytes() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
