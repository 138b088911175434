package publisher

import (
	"context"

	"github.com/foldline/foldline/heads"
)

// Publisher owns a graph's tables under one folder epoch.
type Publisher struct{}

// Claim makes the caller the folder: epoch e+1 by a manifest commit, a barrier on every enrolled table and the dead letters, then
// completion of a fold that an earlier owner had begun to commit (see Recovered). ErrFenced when another claim came in between.
func Claim(ctx context.Context, o Options, owner string) (*Publisher, error) { panic("pending") }

// Epoch returns the folder epoch that was claimed.
func (p *Publisher) Epoch() uint64 { panic("pending") }

// Recovered returns the fold that Claim completed, nil when there was none.
func (p *Publisher) Recovered() *Published { panic("pending") }

// Refresh reads the current state. ErrFenced when the epoch has moved on.
func (p *Publisher) Refresh(ctx context.Context) (*heads.Snapshot, error) { panic("pending") }

// NextFold returns the number of the next fold. It rises with every publish and with every plan whose record was tried.
func (p *Publisher) NextFold() uint64 { panic("pending") }

// PutDeleteKeys uploads the keys (exact encodings) that a fold deletes from a table, also those that were not found, and returns the
// object's key for PreparedTable.DeleteKeys. Safe to call concurrently.
func (p *Publisher) PutDeleteKeys(ctx context.Context, fold uint64, table heads.Table, keys []string) (string, error) {
	panic("pending")
}

// Publish makes a prepared fold the graph's current state: record, table commits in parallel, dead letters last, heads in one manifest
// commit, pruning. After an error the Publisher is used up. ErrFenced, ErrConflict, ErrUnknownOutcome, ErrCorrupt.
func (p *Publisher) Publish(ctx context.Context, prepared *Prepared) (*Published, error) {
	panic("pending")
}

// TableSpec describes a table to create. PrimaryKey empty = "id"; LaneColumns empty = the primary key; UnknownFields empty = refuse.
type TableSpec struct {
	Key           string
	Columns       []heads.Column
	PrimaryKey    []string
	LaneColumns   []string
	Order         string
	UnknownFields string
}

// CreateTable creates and enrols a table. It is idempotent for an equal spec; ErrConflict for another spec under the same key,
// ErrInvalid for a spec that breaks a rule (a nullable key column, a key type that no filter covers, …).
func (p *Publisher) CreateTable(ctx context.Context, spec TableSpec) (heads.Table, error) {
	panic("pending")
}
