// Package tty is the terminal of this process while a program has one of its own.
//
// Its law: the terminal is in raw mode only while this process is in its foreground
// and the program runs, and is as it was before in every end of that. While somebody is asked there, no program writes or reads.
package tty
