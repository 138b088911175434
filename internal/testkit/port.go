package testkit

import (
	"math/rand/v2"
	"net"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// Ports that servers have which are stopped and started again: below those that systems give to whoever asks for any port (from 32768 on Linux, from 49152
// elsewhere), so that nobody is given one while its server is away.
const (
	firstPort = 20_000
	lastPort  = 32_000
)

// FreePort is a port of the loopback interface on which nobody listens now, and which nobody is given who asks for any.
func FreePort(t testing.TB) int {
	t.Helper()
	for attempt := 1; ; attempt++ {
		port := firstPort + rand.IntN(lastPort-firstPort)
		l, err := net.Listen("tcp", Loopback(port))
		if err == nil && l.Close() == nil {
			return port
		}
		require.Less(t, attempt, 1000, "no port is free")
	}
}

// Loopback is the address of a port of the loopback interface.
func Loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
