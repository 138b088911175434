package objstore_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/objstoretest"
)

func TestMain(m *testing.M) {
	objstoretest.Helper(objstore.Open)
	goleak.VerifyTestMain(m)
}
