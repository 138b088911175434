package testkit

import (
	"testing"

	"go.uber.org/goleak"
)

// Main runs a package's tests and fails it when goroutines are left over:
//
//	func TestMain(m *testing.M) { testkit.Main(m) }
func Main(m *testing.M) {
	goleak.VerifyTestMain(m, leakOptions()...)
}

// leakOptions leave out goroutines that libraries start once per process and never stop.
func leakOptions() []goleak.Option {
	return []goleak.Option{
		goleak.IgnoreTopFunction("github.com/golang/glog.(*fileSink).flushDaemon"),
	}
}
