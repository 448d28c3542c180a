// Package fuzz holds black-box fuzz targets with their corpora: a whole switch, set up as the
// input says, with packets into its ports and its underlay while it is being changed; and
// members in mode Access, which reach nobody in any framing.
// Decoders, tables and stages have targets of their own, beside the code, and so has the
// golden model of forwarding (internal/lab/model).
//
//	make fuzz FUZZTIME=80s                     every target of the module, an hour in all
//	go test ./fuzz -fuzz FuzzSwitch -fuzztime 1h -fuzzminimizetime 20x
package fuzz
