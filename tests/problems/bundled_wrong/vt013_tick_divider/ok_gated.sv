// Right: the tick as a condition that is registered.
module TopModule (
  input  logic       clk,
  input  logic       reset,
  input  logic       enable,
  input  logic [3:0] period,
  output logic       tick,
  output logic [3:0] phase
);

  wire last = enable & ~(phase < period);

  always @(posedge clk) tick <= last & ~reset;

  always @(posedge clk)
    if (reset | last) phase <= 0;
    else              phase <= phase + enable;

endmodule
