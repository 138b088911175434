// Package azurestore is the objstore driver for Azure Blob Storage.
//
// A conditional put is one Put Blob with If-None-Match: *, which the service answers with 409
// BlobAlreadyExists when the name is taken. The SDK's own repeats are off: see package retry for why.
//
// The service has no suffix ranges and no start of a listing after a name: GetTail is two requests, and
// List pages from the start of the prefix and leaves out what comes before. What Foldline lists has its
// newest names first, so that costs nothing there.
//
// Credentials: AZURE_STORAGE_CONNECTION_STRING, else AZURE_STORAGE_KEY for the account, else the
// default chain of the SDK (environment, workload and managed identity, command line). A Store may be
// used concurrently.
package azurestore
