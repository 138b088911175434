package client

// Option changes a setting of New.
type Option func(*options)

type options struct{}
