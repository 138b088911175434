// Package recordpb holds the generated protobuf messages of fold records.
package recordpb

//go:generate sh -c "protoc -I. --go_out=. --go_opt=paths=source_relative *.proto"
