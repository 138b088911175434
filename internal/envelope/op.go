package envelope

// Op says what a row does to its key.
type Op uint8

// The operations of the contract. The zero value is the default, upsert.
const (
	// OpUpsert replaces the row of the key or adds it.
	OpUpsert Op = iota
	// OpInsert adds the row and is loud, in the dead letters, when the key exists.
	OpInsert
	// OpDelete removes the row of the key; it needs the key columns only.
	OpDelete
)

var opNames = [...]string{OpUpsert: "upsert", OpInsert: "insert", OpDelete: "delete"}

// ParseOp reads an operation as a header or a line spells it. The empty text is the default, OpUpsert.
// ok is false for any other unknown text, case included.
func ParseOp(text string) (op Op, ok bool) {
	if text == "" {
		return OpUpsert, true
	}
	for i, name := range opNames {
		if name == text {
			return Op(i), true
		}
	}
	return 0, false
}

// String is the operation as the wire spells it.
func (o Op) String() string {
	if int(o) < len(opNames) {
		return opNames[o]
	}
	return "unknown"
}
