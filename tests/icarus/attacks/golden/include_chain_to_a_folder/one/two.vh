`include "one/three.vh"
