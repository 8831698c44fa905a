`include "a.vh"
