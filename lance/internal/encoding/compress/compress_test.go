package compress

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/lance/internal/encoding"
	"github.com/foldline/foldline/lance/internal/pb/pb21"
)

var schemes = []pb21.CompressionScheme{pb21.CompressionScheme_LZ4, pb21.CompressionScheme_ZSTD}

func TestRoundTrip(t *testing.T) {
	for _, scheme := range schemes {
		for _, src := range [][]byte{nil, {1}, bytes.Repeat([]byte("foldline "), 5000)} {
			coded, err := Compress(nil, scheme, src)
			require.NoError(t, err)
			plain, err := Decompress(nil, scheme, coded)
			require.NoError(t, err)
			require.True(t, bytes.Equal(src, plain))
		}
	}
}

// A claim of a size that so few bytes cannot expand to is refused before memory is taken.
func TestClaimsAreBounded(t *testing.T) {
	for _, scheme := range schemes {
		_, err := Decompress(nil, scheme, []byte{0xff, 0xff, 0xff, 0x3f, 0xff, 0, 0, 0, 1, 2})
		var corrupt *encoding.CorruptError
		require.ErrorAs(t, err, &corrupt)
	}
}

func FuzzDecompress(f *testing.F) {
	for i, scheme := range schemes {
		coded, err := Compress(nil, scheme, bytes.Repeat([]byte("abc"), 100))
		require.NoError(f, err)
		f.Add(i == 0, coded)
	}
	f.Fuzz(func(t *testing.T, lz4 bool, data []byte) {
		scheme := pb21.CompressionScheme_ZSTD
		if lz4 {
			scheme = pb21.CompressionScheme_LZ4
		}
		_, err := Decompress(nil, scheme, data)
		var corrupt *encoding.CorruptError
		if err != nil && !errors.As(err, &corrupt) {
			t.Fatalf("%v", err)
		}
	})
}
