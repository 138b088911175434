package keys

import (
	"encoding/hex"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The vectors were taken from the reference engine's own filters.
func TestHashMatchesTheEngine(t *testing.T) {
	sep := AppendSeparator
	cases := []struct {
		name  string
		key   []byte
		bytes string
		hash  uint64
	}{
		{"string b", AppendString(nil, "b"), "62", 0x78452aa11af39f9b},
		{"string nk", AppendString(nil, "nk"), "6e6b", 0xd947e5641024ed68},
		{"string k00001", AppendString(nil, "k00001"), "6b3030303031", 0x58d972f21af13239},
		{"empty string", AppendString(nil, ""), "", 0xef46db3751d8e999},
		{"int64 42", AppendInt(nil, 42), "2a00000000000000", 0xb556806fb6d14353},
		{"uint64 42", AppendUint(nil, 42), "2a00000000000000", 0xb556806fb6d14353},
		{"int32 -42", AppendInt(nil, int64(int32(-42))), "d6ffffffffffffff", 0xd5ba346bc19093f4},
		{"uint32 4000000000", AppendUint(nil, uint64(uint32(4000000000))), "00286bee00000000", 0x212b8c5fc9fcd4d3},
		{"binary", AppendBytes(nil, []byte{9, 8}), "0908", 0x607cddd85dd6f9ae},
		{"composite b, 7", sep(AppendInt(sep(AppendString(nil, "b")), 7)), "6200070000000000000000", 0x51e528986a3178e0},
		{"composite 7, b", sep(AppendString(sep(AppendInt(nil, 7)), "b")), "0700000000000000006200", 0x44d0a80fdf60a481},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.bytes, hex.EncodeToString(c.key))
			require.Equal(t, c.hash, Hash(c.key), "hash")
		})
	}
}

// W5: a key lives in exactly one lane, so the rule is pinned by value.
func TestLaneIsPinned(t *testing.T) {
	key := AppendString(nil, "b")
	for lanes, want := range map[uint32]uint32{0: 0, 1: 0, 2: 1, 3: uint32(0x78452aa11af39f9b % uint64(3)), 16: 0xb} {
		require.Equal(t, want, Lane(key, lanes), "lanes %d", lanes)
	}
}

func TestLanesAreEven(t *testing.T) {
	const lanes, n = 8, 80_000
	var count [lanes]int
	for i := range n {
		count[Lane(AppendString(nil, fmt.Sprintf("airport-%d", i)), lanes)]++
	}
	for lane, c := range count {
		require.InDelta(t, n/lanes, c, n/lanes/10, "lane %d", lane)
	}
}

func TestExactOfOneColumnIsLanceBytes(t *testing.T) {
	e := NewExact(1)
	e.AppendString("a\x00b")
	require.Equal(t, "a\x00b", e.String())
	e.Reset()
	e.AppendInt(-1)
	require.Equal(t, AppendInt(nil, -1), e.Bytes())
}

func TestExactTellsApartWhatLanceBytesDoNot(t *testing.T) {
	lance := func(a, b string) string {
		return string(AppendSeparator(AppendString(AppendSeparator(AppendString(nil, a)), b)))
	}
	exact := func(a, b string) string {
		e := NewExact(2)
		e.AppendString(a)
		e.AppendBytes([]byte(b))
		return e.String()
	}
	require.Equal(t, lance("a\x00b", "c"), lance("a", "b\x00c"))
	require.NotEqual(t, exact("a\x00b", "c"), exact("a", "b\x00c"))

	rapid.Check(t, func(t *rapid.T) {
		part := rapid.StringMatching(`[ab\x00]{0,4}`)
		a, b, c, d := part.Draw(t, "a"), part.Draw(t, "b"), part.Draw(t, "c"), part.Draw(t, "d")
		require.Equal(t, a == c && b == d, exact(a, b) == exact(c, d))
	})
}

func TestBuildingAKeyDoesNotAllocate(t *testing.T) {
	e := NewExact(2)
	buf := make([]byte, 0, 64)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		e.Reset()
		e.AppendString("ORD")
		e.AppendInt(12)
		buf = AppendSeparator(AppendInt(AppendSeparator(AppendString(buf[:0], "ORD")), 12))
		_ = Hash(buf)
	}))
}

func TestLanceBytesOfExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.StringMatching(`[ab\x00]{0,4}`), 1, 4).Draw(t, "parts")
		e, want := NewExact(len(parts)), []byte(nil)
		for _, p := range parts {
			e.AppendString(p)
			want = AppendString(want, p)
			if len(parts) > 1 {
				want = AppendSeparator(want)
			}
		}
		got, err := AppendLance(nil, e.Bytes(), len(parts))
		require.NoError(t, err)
		require.Equal(t, string(want), string(got))
	})
	for _, bad := range []string{"", "\x01", "\x02a", "\x00", "\x01a\x01b\x01c", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"} {
		_, err := AppendLance(nil, []byte(bad), 2)
		require.ErrorIs(t, err, ErrExact, "%q", bad)
	}
}
