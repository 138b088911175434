package publisher

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/internal/testkit"
)

// TestDamagedTableAtAClaim: a table that takes no barrier is suspended with the reason; the claim goes on and the others are folded.
func TestDamagedTableAtAClaim(t *testing.T) {
	for _, damage := range testkit.Damages() {
		if damage.Data {
			continue // a barrier reads no data
		}
		t.Run(damage.Name, func(t *testing.T) {
			ctx := context.Background()
			store, log := crashGraph(t)
			require.NoError(t, damage.Do(ctx, store, heads.Join(testRoot, heads.TablePath(testTables[0]))))
			p, err := Claim(ctx, options(store), "successor")
			require.NoError(t, err)
			requireSuspended(t, p.snap)
			_, err = publishThrough(ctx, p, append(log[:3:3], entry{{testTables[1], "y", 7, "upsert"}}), 4)
			require.NoError(t, err)
			again, err := Claim(ctx, options(store), "third")
			require.NoError(t, err)
			requireSuspended(t, again.snap)
			_, err = again.Resume(ctx, testTables[0])
			require.True(t, Unavailable(err), "%v", err)
		})
	}
}

// TestDamagedTableAtAnAdoption: an idle table that cannot be read is suspended, what other writers did to the others is adopted.
func TestDamagedTableAtAnAdoption(t *testing.T) {
	for _, damage := range testkit.Damages() {
		if damage.Data {
			continue // an adoption reads no data
		}
		t.Run(damage.Name, func(t *testing.T) {
			ctx := context.Background()
			store, _ := crashGraph(t)
			p, err := Claim(ctx, options(store), "folder")
			require.NoError(t, err)
			value := int64(77)
			for _, key := range testTables[:2] {
				require.NoError(t, foreign{store}.merge(ctx, key, "theirs", &value))
			}
			require.NoError(t, damage.Do(ctx, store, heads.Join(testRoot, heads.TablePath(testTables[0]))))
			s, err := p.Adopt(ctx)
			require.NoError(t, err)
			if damage.Name == "the newest manifest" {
				t.Log("what is left is the head")
				return
			}
			requireSuspended(t, s)
			got, err := content(ctx, store, s, testTables[1])
			require.NoError(t, err)
			require.Equal(t, value, got["theirs"])
			again, err := p.Adopt(ctx)
			require.NoError(t, err)
			require.Equal(t, s.Version, again.Version)
		})
	}
}

// requireSuspended requires that the first table alone is held, with a reason and a time.
func requireSuspended(t *testing.T, s *heads.Snapshot) {
	t.Helper()
	for i, key := range testTables {
		head, ok := s.Table(key)
		require.True(t, ok)
		require.Equal(t, i == 0, head.Head.State == heads.StateSuspended, "%s is %s", key, head.Head.State)
		require.Equal(t, i == 0, head.Head.Hold != heads.Hold{})
		if i == 0 {
			require.NotEmpty(t, head.Head.Hold.Reason)
			require.False(t, head.Head.Hold.Since.IsZero())
		}
	}
}
