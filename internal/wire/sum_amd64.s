//go:build !purego

#include "textflag.h"

// func sumWide(b []byte) uint64
//
// Adds up b as little endian 32-bit words, zero-extended to the lanes of four
// accumulators: no carry is ever lost. len(b) is a multiple of 128, and not 0.
TEXT ·sumWide(SB), NOSPLIT, $0-32
	MOVQ  b_base+0(FP), SI
	MOVQ  b_len+8(FP), CX
	VPXOR Y0, Y0, Y0
	VPXOR Y1, Y1, Y1
	VPXOR Y2, Y2, Y2
	VPXOR Y3, Y3, Y3
	VPXOR Y15, Y15, Y15

loop:
	VMOVDQU    (SI), Y4
	VMOVDQU    32(SI), Y5
	VMOVDQU    64(SI), Y6
	VMOVDQU    96(SI), Y7
	VPUNPCKLDQ Y15, Y4, Y8
	VPUNPCKHDQ Y15, Y4, Y9
	VPUNPCKLDQ Y15, Y5, Y10
	VPUNPCKHDQ Y15, Y5, Y11
	VPADDQ     Y8, Y0, Y0
	VPADDQ     Y9, Y1, Y1
	VPADDQ     Y10, Y2, Y2
	VPADDQ     Y11, Y3, Y3
	VPUNPCKLDQ Y15, Y6, Y8
	VPUNPCKHDQ Y15, Y6, Y9
	VPUNPCKLDQ Y15, Y7, Y10
	VPUNPCKHDQ Y15, Y7, Y11
	VPADDQ     Y8, Y0, Y0
	VPADDQ     Y9, Y1, Y1
	VPADDQ     Y10, Y2, Y2
	VPADDQ     Y11, Y3, Y3
	ADDQ       $128, SI
	SUBQ       $128, CX
	JNE        loop

	VPADDQ       Y1, Y0, Y0
	VPADDQ       Y3, Y2, Y2
	VPADDQ       Y2, Y0, Y0
	VEXTRACTI128 $1, Y0, X1
	VPADDQ       X1, X0, X0
	VPSRLDQ      $8, X0, X1
	VPADDQ       X1, X0, X0
	VMOVQ        X0, AX
	VZEROUPPER
	MOVQ         AX, ret+24(FP)
	RET
