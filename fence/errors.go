package fence

import "errors"

var (
	// ErrFenced: a higher epoch was seen. Class fenced: stop being the owner.
	ErrFenced = errors.New("fence: fenced by a higher epoch")
	// ErrUnseen: a transaction between ours and the newest version is gone, so a higher epoch may have been there. Ask the
	// authority before the next attempt.
	ErrUnseen = errors.New("fence: an intervening transaction is gone")
	// ErrNotCovered: a filter does not cover exactly the primary key, or the key's type cannot be covered. Class invalid.
	ErrNotCovered = errors.New("fence: key filter does not cover the primary key")
	// ErrNullKey: a row without a complete key. Class invalid.
	ErrNullKey = errors.New("fence: key has a null")
)
