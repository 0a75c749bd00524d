// Package program is what a program gets that is an agent itself: a network in which
// every connection passes the gate of its run.
package program
