//go:build interop

// The conformance suite against Azurite, the emulator of Azure Storage, which is a Node program: `make
// interop` installs it and runs this with its command in the environment variable AZURITE.
package azurestore_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/azurestore"
	"github.com/foldline/foldline/objstore/objstoretest"
)

// The account of every Azurite, with its well-known key.
const (
	account = "devstoreaccount1"
	key     = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)

var (
	endpoint   string
	containers atomic.Int64
)

func TestMain(m *testing.M) {
	objstoretest.Helper(openURL)
	ctx, cancel := context.WithCancel(context.Background())
	stop, err := startAzurite(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	cancel()
	stop()
	if leak := goleak.Find(goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop")); leak != nil && code == 0 {
		fmt.Fprintln(os.Stderr, leak)
		code = 1
	}
	os.Exit(code)
}

func startAzurite(ctx context.Context) (stop func(), err error) {
	dir, err := os.MkdirTemp("", "azurite-*")
	if err != nil {
		return nil, err
	}
	command := os.Getenv("AZURITE")
	if command == "" {
		return nil, fmt.Errorf("AZURITE must hold the command of azurite-blob")
	}
	cmd := exec.CommandContext(ctx, command, "--location", dir, "--blobPort", "0", "--skipApiVersionCheck", "--loose")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if _, url, ok := strings.Cut(lines.Text(), "successfully listens on "); ok {
			endpoint = url + "/" + account
			break
		}
	}
	go func() {
		for lines.Scan() { // keep the pipe empty
		}
	}()
	if endpoint == "" {
		return nil, fmt.Errorf("azurite did not start")
	}
	return func() { _ = cmd.Wait(); _ = os.RemoveAll(dir) }, nil
}

func openURL(_ context.Context, rawURL string) (objstore.Store, error) {
	o, err := azurestore.ParseURL(rawURL)
	if err != nil {
		return nil, err
	}
	o.Key, o.Backoff = key, time.Millisecond
	return azurestore.Open(o)
}

// newURL makes a container and returns the URL of a store in it.
func newURL(t *testing.T) string {
	t.Helper()
	name := fmt.Sprintf("test%d", containers.Add(1))
	credential, err := container.NewSharedKeyCredential(account, key)
	require.NoError(t, err)
	client, err := container.NewClientWithSharedKeyCredential(endpoint+"/"+name, credential, nil)
	require.NoError(t, err)
	_, err = client.Create(t.Context(), nil)
	require.NoError(t, err)
	return fmt.Sprintf("az://%s/graphs/demo?account=%s&endpoint=%s", name, account, endpoint)
}

func TestItConforms(t *testing.T) {
	objstoretest.Run(t, func(t *testing.T) objstore.Store {
		s, err := openURL(t.Context(), newURL(t))
		require.NoError(t, err)
		return s
	})
}

func TestTwoProcesses(t *testing.T) { objstoretest.Race(t, openURL, newURL(t)) }
