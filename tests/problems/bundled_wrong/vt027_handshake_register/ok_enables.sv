// Right: separate enables for flag and byte.
module TopModule (
  input  logic       clk,
  input  logic       reset,
  input  logic       flush,
  input  logic       in_valid,
  input  logic [7:0] in_data,
  output logic       in_ready,
  output logic       out_valid,
  output logic [7:0] out_data,
  input  logic       out_ready
);

  reg        full;
  reg [7:0]  slot;
  wire       take = in_valid & in_ready & ~flush;

  assign in_ready = ~(full & ~out_ready);
  assign out_valid = full;
  assign out_data = slot;

  always @(posedge clk) full <= ~reset & ~flush & (take | (full & ~out_ready));

  always @(posedge clk)
    if (reset)     slot <= 8'd0;
    else if (take) slot <= in_data;

endmodule
