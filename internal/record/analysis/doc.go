// Package analysis makes policies of records, and decides records again:
// records in, policy out.
//
// A suggestion grants what was used, and says of everything that it cannot but
// grant beside it (what lies below a folder, a method that no record names)
// that it does. A record that does not hold all that was judged is never
// guessed at: what it may have been is considered whole, and named as doubtful.
//
// The package reads no file and no clock, decides nothing by itself (a
// [caps.Set] does) and keeps no view of what it is shown.
package analysis
