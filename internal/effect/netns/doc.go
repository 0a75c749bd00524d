// Package netns makes the network of a program that is to reach only what a
// policy says, from inside a network namespace that has nothing in it: every
// address is one of the namespace's own, each TCP connection ends at listening
// sockets of ours, and these are handed to the process outside, which decides.
//
// No process stays inside, nothing translates packets outside of the kernel, and
// nothing leads out: without the sockets that are handed over, a program can only
// reach itself.
package netns
