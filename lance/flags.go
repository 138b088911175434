package lance

import "github.com/foldline/foldline/lance/internal/pb"

// Feature flags of a manifest.
const (
	flagDeletions         = 1
	flagStableRowIDs      = 2
	flagConfig            = 8
	flagBasePaths         = 16
	flagNoTransactionFile = 32

	// knownFlags also holds 4, a deprecated mark that means nothing today. All above 32 is unknown: later releases give the
	// same bit different meanings.
	knownFlags = 63
)

// checkReaderFlags refuses what this package cannot read rightly (L4).
func checkReaderFlags(m *pb.Manifest) error {
	if unknown := m.GetReaderFeatureFlags() &^ knownFlags; unknown != 0 {
		return unsupported("version %d needs reader features %#x", m.GetVersion(), unknown)
	}
	if m.FragmentTree != nil {
		return unsupported("version %d keeps its fragments in a tree", m.GetVersion())
	}
	for _, f := range m.GetFragments() {
		if len(f.GetOverlays()) > 0 {
			return unsupported("version %d: fragment %d has data overlays", m.GetVersion(), f.GetId())
		}
	}
	return nil
}

// checkWriterFlags refuses to build on what this package cannot carry on rightly (L4).
func checkWriterFlags(m *pb.Manifest) error {
	if unknown := m.GetWriterFeatureFlags() &^ knownFlags; unknown != 0 {
		return unsupported("version %d needs writer features %#x", m.GetVersion(), unknown)
	}
	return checkReaderFlags(m)
}

// setFlags recomputes the flags from the content. Stable row ids and the wish for no transaction files are inherited.
func setFlags(m *pb.Manifest) {
	reader := m.GetReaderFeatureFlags() & flagStableRowIDs
	writer := m.GetWriterFeatureFlags() & (flagStableRowIDs | flagNoTransactionFile)
	for _, f := range m.GetFragments() {
		if f.GetDeletionFile() != nil {
			reader |= flagDeletions
			writer |= flagDeletions
			break
		}
	}
	if len(m.GetConfig()) > 0 {
		writer |= flagConfig
	}
	if len(m.GetBasePaths()) > 0 {
		reader |= flagBasePaths
		writer |= flagBasePaths
	}
	m.ReaderFeatureFlags, m.WriterFeatureFlags = reader, writer
}

// stableRowIDs reports whether rows of the table have ids that survive updates and compaction.
func stableRowIDs(m *pb.Manifest) bool {
	return (m.GetReaderFeatureFlags()|m.GetWriterFeatureFlags())&flagStableRowIDs != 0
}
