package s3store

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
)

// errCredentials marks that there are none: no request was sent.
var errCredentials = errors.New("no credentials")

// credentials are those of the standard chain. The chain refreshes by itself those that name their end (roles, web
// identity, single sign-on). Keys of a file or of the environment do not; when a server says that they have ended, the
// whole chain is read again, so that new contents of a file count without a restart.
type credentials struct {
	mu    sync.Mutex
	chain aws.CredentialsProvider // nil: to be read
}

var _ aws.CredentialsProvider = (*credentials)(nil)

// Retrieve implements aws.CredentialsProvider.
func (c *credentials) Retrieve(ctx context.Context) (aws.Credentials, error) {
	chain, err := c.current(ctx)
	var found aws.Credentials
	if err == nil {
		found, err = chain.Retrieve(ctx)
	}
	if err != nil {
		return aws.Credentials{}, fmt.Errorf("%w: %w", errCredentials, err)
	}
	return found, nil
}

func (c *credentials) current(ctx context.Context) (aws.CredentialsProvider, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.chain == nil {
		cfg, err := config.LoadDefaultConfig(ctx) // reads files, asks no server
		if err != nil {
			return nil, err
		}
		c.chain = cfg.Credentials
	}
	return c.chain, nil
}

// forget makes the next request read the chain again.
func (c *credentials) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.chain = nil
}
