package run

import (
	"context"
	"fmt"
	"os"

	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/cloud"
)

// OpenStore opens the store of a graph root. Credentials come from where each vendor's own tools look for them; a shared
// key or connection string of Azure from AZURE_STORAGE_KEY or AZURE_STORAGE_CONNECTION_STRING.
func OpenStore(ctx context.Context, root string) (objstore.Store, error) {
	store, err := cloud.Open(ctx, root, cloud.Secrets{
		AzureKey:              os.Getenv("AZURE_STORAGE_KEY"),
		AzureConnectionString: os.Getenv("AZURE_STORAGE_CONNECTION_STRING"),
	})
	if err != nil {
		return nil, fmt.Errorf("root: %w", err)
	}
	return store, nil
}
