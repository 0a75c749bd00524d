// Package program is what a program gets that is an agent itself: the lane in which it
// runs, its folders and variables, and a network in which every connection passes the
// gate of its run.
package program
