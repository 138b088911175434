package file_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/lance/internal/file"
	"github.com/foldline/foldline/lance/internal/schema"
)

// readDamaged reads what it can of a file that may be damaged. It returns the first error.
func readDamaged(data []byte) error {
	ctx := context.Background()
	r, err := file.OpenReader(ctx, &source{data: data}, file.ReaderOptions{Name: "damaged", Size: int64(len(data))})
	if err != nil {
		return err
	}
	cols, err := r.Columns()
	if err != nil {
		return err
	}
	rows := min(r.Rows(), 4000) // a file may claim any number of nulls
	for rec, err := range r.Scan(ctx, cols, 0, rows, 64) {
		if err != nil {
			return err
		}
		rec.Release()
	}
	var picked []uint32
	for i := int64(0); i < rows; i += 61 {
		picked = append(picked, uint32(i))
	}
	rec, err := r.Take(ctx, cols, picked)
	if err == nil {
		rec.Release()
	}
	return err
}

// typed reports whether an error is of a kind that a caller can act on.
func typed(err error) bool {
	var corrupt *file.CorruptError
	return err == nil || errors.As(err, &corrupt) || errors.Is(err, file.ErrUnsupported) ||
		errors.Is(err, schema.ErrInvalid) || errors.Is(err, schema.ErrUnsupportedType)
}

// A flipped byte anywhere is refused with a typed error or read; it never panics.
func TestFlippedBytes(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	refused := 0
	for _, g := range goldens(t) {
		for range 60 {
			data := bytes.Clone(g.data)
			at := r.IntN(len(data))
			if r.IntN(2) == 0 { // the metadata is at the end
				at = len(data) - 1 - r.IntN(min(len(data), 700))
			}
			data[at] ^= byte(1 + r.IntN(255))
			err := readDamaged(data)
			require.True(t, typed(err), "%s, byte %d: %v", g.name, at, err)
			if err != nil {
				refused++
			}
		}
	}
	require.Greater(t, refused, 1000)
}

// A file that has lost its end is refused.
func TestTruncatedFiles(t *testing.T) {
	for _, g := range goldens(t) {
		for _, n := range []int{0, 1, 39, 40, len(g.data) / 2, len(g.data) - 1} {
			err := readDamaged(g.data[:n])
			require.Error(t, err, "%s cut to %d", g.name, n)
			require.True(t, typed(err), "%s cut to %d: %v", g.name, n, err)
		}
	}
}

// Errors name the file, the region and the offset.
func TestCorruptErrorsName(t *testing.T) {
	data := bytes.Clone(goldens(t)[0].data)
	data[len(data)-1] = 'X'
	err := readDamaged(data)
	var corrupt *file.CorruptError
	require.ErrorAs(t, err, &corrupt)
	require.Equal(t, "damaged", corrupt.File)
	require.Equal(t, "footer", corrupt.Region)
	require.EqualValues(t, len(data)-40, corrupt.Offset)
}

func FuzzReader(f *testing.F) {
	for _, g := range goldens(f) {
		if len(g.data) < 6000 {
			f.Add(g.data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := readDamaged(data); !typed(err) {
			t.Fatalf("%v", err)
		}
	})
}
