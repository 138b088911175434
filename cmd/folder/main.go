package main

import "github.com/foldline/foldline/cmd/internal/daemon"

func main() { daemon.Main(daemon.Folder) }
