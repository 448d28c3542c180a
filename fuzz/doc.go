// Package fuzz holds black-box fuzz targets with their corpora: a whole switch, set up as the
// input says, with packets into its ports and its underlay while it is being changed; three
// switches on a network whose links are cut; and members in mode Access, which reach nobody in
// any framing. Decoders, tables and stages have
// targets of their own, beside the code.
//
//	input --> settings --> operations, one at a time until all is quiet
//	                          |                     |
//	                      the switch          what is known of it
//	                          |                     |
//	                          +---- must agree -----+
//	      laws, whatever the settings: who may get a frame, what is well formed, what
//	      counters add up to, what has bounds
//	      a model, where the settings are bridging in VXLAN: frames at every port,
//	      datagrams, every counter by its reason, every MAC table, every event
//
//	make fuzz FUZZTIME=80s                     every target of the module, an hour in all
//	go test ./fuzz -fuzz FuzzSwitch -fuzztime 1h -fuzzminimizetime 20x
//	go test ./fuzz -run 'TestSwitch|TestFabric' -games 100000
//	go test ./fuzz -run TestSwitch -seed 17    a game once more
//
// Each target keeps some inputs in testdata/fuzz beside it: of those that go test has found
// interesting (go env GOCACHE, folder fuzz), the smallest that together reach what all of them
// do, ten or twenty. A target whose inputs come to mean something else gets others.
package fuzz
