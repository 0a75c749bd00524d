// Command pack puts a program at the end of another: pack FIRST SECOND OUT.
package main

import (
	"errors"
	"fmt"
	"os"

	"runloop.dev/rlp/internal/companion"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: pack FIRST SECOND OUT")
		os.Exit(2)
	}
	if err := pack(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
}

// pack replaces out as a whole, so that a program which runs stays as it is.
func pack(first, second, out string) error {
	a, err := os.Open(first)
	if err != nil {
		return err
	}
	defer a.Close()
	b, err := os.Open(second)
	if err != nil {
		return err
	}
	defer b.Close()
	w, err := os.OpenFile(out+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	if err := errors.Join(companion.Pack(w, a, b), w.Close()); err != nil {
		return err
	}
	return os.Rename(out+".new", out)
}
