package lance

import (
	"github.com/google/uuid"
)

// Transaction is the intention of one commit: what was read and what is to change. It is stored in the manifest that it
// makes. Treat it as immutable once it is shared.
type Transaction struct {
	// ReadVersion is the version that the operation was planned on.
	ReadVersion uint64
	// UUID identifies the transaction for ever; a lost answer is settled by it.
	UUID string
	// Properties are free text for people and tools. Cleanup may drop them with the version's manifest.
	Properties map[string]string
	Op         Operation
}

// NewTransaction returns a transaction planned on t, with a fresh UUID.
func NewTransaction(t *Table, op Operation) *Transaction {
	return &Transaction{ReadVersion: t.Version(), UUID: uuid.NewString(), Op: op}
}

// Marshal encodes the transaction as the format's message, the same bytes each time.
func (tx *Transaction) Marshal() ([]byte, error) {
	m, err := tx.toProto()
	if err != nil {
		return nil, err
	}
	return marshal(m)
}
