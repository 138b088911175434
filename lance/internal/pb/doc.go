// Package pb holds the generated protobuf messages of Lance's data files and tables. The .proto files
// beside the code are written from the format's field numbers; `make generate` (or go generate here)
// rebuilds the Go code with protoc and protoc-gen-go.
//
// The page encodings of the two encoding families live in the sub-packages pb20 and pb21, because their
// message names overlap.
package pb

//go:generate sh -c "protoc -I. --go_out=. --go_opt=paths=source_relative *.proto pb20/*.proto pb21/*.proto"
