package main

import (
	"fmt"
	"strconv"

	"github.com/alecthomas/kong"
)

// limit is a --limit: how many things to print, 0 for all.
type limit int64

// Decode reads the flag's value. kong's own reader would take "-1" for a flag and advise to write --limit="-1".
func (l *limit) Decode(ctx *kong.DecodeContext) error {
	text := ctx.Scan.Pop().String()
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return fmt.Errorf("%q is not a number of 0 or above", text)
	}
	*l = limit(n)
	return nil
}

var _ kong.MapperValue = (*limit)(nil)
