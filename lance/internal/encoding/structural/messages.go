package structural

import (
	"github.com/foldline/foldline/lance/internal/encoding"
	"github.com/foldline/foldline/lance/internal/pb/pb21"
)

// The messages that describe encodings, as the writer makes them.

func flatBits(bits int) *pb21.CompressiveEncoding {
	return &pb21.CompressiveEncoding{Compression: &pb21.CompressiveEncoding_Flat{Flat: &pb21.Flat{BitsPerValue: uint64(bits)}}}
}

// flatMessage describes uncompressed values of a fixed-width type.
func flatMessage(t encoding.Type, validity bool) *pb21.CompressiveEncoding {
	if !t.Vector {
		return flatBits(t.Bits)
	}
	return &pb21.CompressiveEncoding{Compression: &pb21.CompressiveEncoding_FixedSizeList{FixedSizeList: &pb21.FixedSizeList{
		ItemsPerValue: uint64(t.Dim), Values: flatBits(t.Bits), HasValidity: validity,
	}}}
}

func variableMessage(offsetBits int) *pb21.CompressiveEncoding {
	return &pb21.CompressiveEncoding{Compression: &pb21.CompressiveEncoding_Variable{Variable: &pb21.Variable{Offsets: flatBits(offsetBits)}}}
}

func inlineMessage(bits int) *pb21.CompressiveEncoding {
	return &pb21.CompressiveEncoding{Compression: &pb21.CompressiveEncoding_InlineBitpacking{
		InlineBitpacking: &pb21.InlineBitpacking{UncompressedBitsPerValue: uint64(bits)},
	}}
}

func outOfLineMessage(bits, width int) *pb21.CompressiveEncoding {
	return &pb21.CompressiveEncoding{Compression: &pb21.CompressiveEncoding_OutOfLineBitpacking{
		OutOfLineBitpacking: &pb21.OutOfLineBitpacking{UncompressedBitsPerValue: uint64(bits), Values: flatBits(width)},
	}}
}

func generalMessage(scheme pb21.CompressionScheme, inner *pb21.CompressiveEncoding) *pb21.CompressiveEncoding {
	return &pb21.CompressiveEncoding{Compression: &pb21.CompressiveEncoding_General{
		General: &pb21.General{Compression: &pb21.BufferCompression{Scheme: scheme}, Values: inner},
	}}
}
