package main

import (
	"fmt"

	"github.com/foldline/foldline/cmd/internal/run"
)

type versionCmd struct{}

func (versionCmd) Run(e *env) error {
	_, err := fmt.Fprintln(e.stdout, "foldline", version())
	return err
}

func version() string { return run.Version() }
