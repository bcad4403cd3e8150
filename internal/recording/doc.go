// Package recording records what a command shows on a terminal, and draws it.
//
// A [Cast] is read and written in the format of asciinema
// (https://docs.asciinema.org/manual/asciicast/v2/); [Cast.SVG] draws it as a
// picture that moves, without scripts, in the reader's light or dark colours.
// It knows lines, not cursors: what is drawn on top of itself, such as a
// progress bar, is not for it.
package recording
