`include "b.vh"
