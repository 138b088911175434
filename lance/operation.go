package lance

import (
	"fmt"
)

// Kind names an operation.
type Kind uint8

// The operations of the format.
const (
	KindOther Kind = iota // not known to this package: incompatible with everything
	KindAppend
	KindDelete
	KindUpdate
	KindOverwrite
	KindRewrite
	KindCreateIndex
	KindMerge
	KindProject
	KindRestore
	KindReserveFragments
	KindUpdateConfig
	KindDataReplacement
	KindUpdateMemWalState
	KindClone
	KindUpdateBases
	kindCount
)

var kindNames = [kindCount]string{
	"Other", "Append", "Delete", "Update", "Overwrite", "Rewrite", "CreateIndex", "Merge", "Project", "Restore",
	"ReserveFragments", "UpdateConfig", "DataReplacement", "UpdateMemWalState", "Clone", "UpdateBases",
}

func (k Kind) String() string {
	if k < kindCount {
		return kindNames[k]
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// Operation is what a transaction does to a table. The types of this package that implement it are the format's
// operations; [Other] stands for those it does not know.
type Operation interface {
	Kind() Kind
}

// Append adds fragments. Their ids are given by the commit.
type Append struct{ Fragments []Fragment }

// Delete replaces fragments by versions with a larger deletion file and removes fragments without live rows.
type Delete struct {
	UpdatedFragments   []Fragment
	DeletedFragmentIDs []uint64
	// Predicate is for people; it decides nothing.
	Predicate string
}

// Update deletes rows, adds rows and says which keys it inserts, all in one step.
type Update struct {
	RemovedFragmentIDs []uint64
	UpdatedFragments   []Fragment
	NewFragments       []Fragment
	// ModifiedFields are set by column rewrites only, which this package reads but does not commit.
	ModifiedFields []uint32
	// PreservedFields are, for a merge-insert, all field ids in pre-order.
	PreservedFields []uint32
	// RewritesColumns marks a column rewrite.
	RewritesColumns bool
	// Filter is the fingerprint of the inserted keys; nil gives no protection against concurrent inserts of the same key.
	Filter *KeyFilter
	// memWal holds the shards of theirs that the update compacted: shard id to generation.
	memWal map[string]uint64
}

// Overwrite replaces rows and schema. It also creates tables.
type Overwrite struct {
	Fragments []Fragment
	// Schema of the new version. It is nil in a transaction of others whose schema this package cannot express.
	Schema *Schema
	// ConfigUpserts are merged into the table's config.
	ConfigUpserts map[string]string
}

// CreateIndex adds and drops indexes, named by name and raw uuid bytes.
type CreateIndex struct {
	New, Removed []Index
}

// RewriteGroup replaces old fragments by new ones with the same live rows.
type RewriteGroup struct{ Old, New []Fragment }

// Rewrite is a compaction.
type Rewrite struct{ Groups []RewriteGroup }

// Merge changes the schema together with data: it carries the complete final fragment list.
type Merge struct {
	Fragments []Fragment
	Schema    *Schema // nil when this package cannot express it
}

// Project changes the schema without data: drop, rename, nullability.
type Project struct {
	Schema *Schema // nil when this package cannot express it
	// validated tells that the rows of the version it was planned on were looked at, so that it holds for no other.
	validated bool
}

// Restore makes the content of an older version the newest.
type Restore struct{ Version uint64 }

// ReserveFragments raises the table's highest fragment id.
type ReserveFragments struct{ Count uint32 }

// MapUpdate changes a string map: Replace starts from an empty one, then Remove, then Set.
type MapUpdate struct {
	Set     map[string]string
	Remove  []string
	Replace bool
}

// UpdateConfig changes the table's maps; a nil update leaves a map alone.
type UpdateConfig struct {
	Config         *MapUpdate
	TableMetadata  *MapUpdate
	SchemaMetadata *MapUpdate
	FieldMetadata  map[int32]*MapUpdate
}

// DataReplacement swaps a data file of some fragments; this package reads it but does not commit it.
type DataReplacement struct{ Files map[uint64]DataFile }

// UpdateMemWalState belongs to another writer's log; this package only knows its conflicts.
type UpdateMemWalState struct{}

// Clone marks the first version of a shallow clone or branch.
type Clone struct{}

// UpdateBases adds base paths.
type UpdateBases struct{}

// Other is an operation that this package does not know. It conflicts with everything.
type Other struct{}

// Kind tells the operation's name; so do the methods below.
func (*Append) Kind() Kind            { return KindAppend }
func (*Delete) Kind() Kind            { return KindDelete }
func (*Update) Kind() Kind            { return KindUpdate }
func (*Overwrite) Kind() Kind         { return KindOverwrite }
func (*CreateIndex) Kind() Kind       { return KindCreateIndex }
func (*Rewrite) Kind() Kind           { return KindRewrite }
func (*Merge) Kind() Kind             { return KindMerge }
func (*Project) Kind() Kind           { return KindProject }
func (*Restore) Kind() Kind           { return KindRestore }
func (*ReserveFragments) Kind() Kind  { return KindReserveFragments }
func (*UpdateConfig) Kind() Kind      { return KindUpdateConfig }
func (*DataReplacement) Kind() Kind   { return KindDataReplacement }
func (*UpdateMemWalState) Kind() Kind { return KindUpdateMemWalState }
func (*Clone) Kind() Kind             { return KindClone }
func (*UpdateBases) Kind() Kind       { return KindUpdateBases }
func (*Other) Kind() Kind             { return KindOther }
