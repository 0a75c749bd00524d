package lane

import "os"

// A Live is what of this process a program's streams pass through to while it runs.
// The program never has these files themselves. What it reads and writes goes
// through rlp, and of what it writes the beginning is kept, as MaxOutput says.
type Live struct {
	// Stdin is read for the program, a little ahead of it; nil: it gets what the
	// command says. Its end is the end of the program's stdin. A terminal is not
	// read while this process is in the background.
	Stdin *os.File
	// Where Stdin and Stdout are terminals the program gets one of its own, as large
	// and with the same modes, and never theirs: theirs is in raw mode meanwhile, what is
	// typed and what is written passes as it is, and so does another size. Stderr is
	// that terminal's, too, unless it is none.
	//
	// Stdout and Stderr get what the program writes, as it writes it; nil: nobody.
	// When one takes no more the program hears it as the writer to a closed pipe does.
	Stdout, Stderr *os.File
	// Errors passes on, by pass, what the program wrote to Stderr and what is left at its
	// end, when p is empty; it says whether that was taken, as pass does. Nil: as it is.
	Errors func(p []byte, pass func([]byte) bool) (taken bool)
	// Signals are those that rlp got for the program. SIGTERM goes to the program
	// alone, any other to the group that it began with. The caller stops the channel
	// when the program has ended; closing it is not needed.
	Signals <-chan os.Signal
}

// Reads reports whether the program can be given anything on stdin: /dev/null gives
// nothing.
func (l *Live) Reads() bool {
	if l == nil || l.Stdin == nil {
		return false
	}
	info, err := l.Stdin.Stat()
	null, bad := os.Stat(os.DevNull)
	return err != nil || bad != nil || !os.SameFile(info, null)
}
