package testkit

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The keys of every gateway.
const (
	gatewayAccess = "FOLDLINEACCESS"
	gatewaySecret = "foldline-secret-of-tests"
)

// GatewayEnv is the environment of a process that works at a gateway: its keys, and nothing of the machine's own.
func GatewayEnv() map[string]string {
	return map[string]string{
		"AWS_ACCESS_KEY_ID": gatewayAccess, "AWS_SECRET_ACCESS_KEY": gatewaySecret, "AWS_SESSION_TOKEN": "", "AWS_REGION": "us-east-1",
		"AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull, "AWS_EC2_METADATA_DISABLED": "true",
	}
}

// gatewayEnv names the program; `make s3` builds it and sets the variable.
const gatewayEnv = "VERSITYGW"

// Gateway is versitygw, an S3 server over a directory, as a process of its own: it can be killed and started again on
// the same directory at the same address. One goroutine uses it.
type Gateway struct {
	// URL is the endpoint, Dir holds a directory for each bucket.
	URL, Dir string

	t       testing.TB
	address string
	process *exec.Cmd
	exited  chan struct{}
}

// StartGateway starts a gateway on a new directory with one bucket. It ends with the test. Where the program is stands
// in the environment variable VERSITYGW; without it the test fails.
func StartGateway(t testing.TB, bucket string) *Gateway {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, bucket), 0o755)) // a bucket is a directory
	return StartGatewayOn(t, dir)
}

// StartGatewayOn starts a gateway on a directory that another one may serve too.
func StartGatewayOn(t testing.TB, dir string) *Gateway {
	t.Helper()
	g := &Gateway{Dir: dir, t: t, address: Loopback(FreePort(t))}
	g.URL = "http://" + g.address
	t.Cleanup(g.Kill)
	g.Start()
	return g
}

// Start starts the gateway again after Kill, and waits until it answers.
func (g *Gateway) Start() {
	g.t.Helper()
	program := os.Getenv(gatewayEnv)
	require.NotEmpty(g.t, program, "%s must name the program versitygw; make s3 builds it", gatewayEnv)
	log, err := os.CreateTemp(g.t.TempDir(), "versitygw")
	require.NoError(g.t, err)
	defer func() { _ = log.Close() }() // the process has its own handle
	g.process = exec.Command(program, "--port", g.address, "--quiet", "--keep-alive", "posix", g.Dir)
	g.process.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+gatewayAccess, "ROOT_SECRET_KEY="+gatewaySecret)
	g.process.Stdout, g.process.Stderr = log, log
	require.NoError(g.t, g.process.Start())
	g.exited = make(chan struct{})
	go func(process *exec.Cmd, exited chan struct{}) {
		defer close(exited)
		_ = process.Wait() // how it ended is seen by those who need it
	}(g.process, g.exited)
	WaitFor(g.t, "the gateway to answer", func() bool {
		select {
		case <-g.exited:
			text, err := os.ReadFile(log.Name())
			g.t.Fatalf("versitygw ended: %s", errors.Join(err, fmt.Errorf("%s", text)))
		default:
		}
		return answers(g.URL)
	})
}

// Kill ends the gateway with SIGKILL, in the middle of whatever it does, and waits for its end. It may be called twice.
func (g *Gateway) Kill() {
	if g.process == nil {
		return
	}
	_ = g.process.Process.Kill() // it may be gone already
	<-g.exited
	g.process = nil
}

// answers reports whether an HTTP server is there, whatever it says.
func answers(url string) bool {
	client := http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := client.Get(url)
	if err != nil {
		return false
	}
	return r.Body.Close() == nil
}
