// Right: one cycle counter and a multiplexer in place of a shift register.
module TopModule (
  input  logic       clk,
  input  logic       reset,
  input  logic       start,
  input  logic [7:0] data,
  input  logic [1:0] parity_mode,
  output logic       tx,
  output logic       busy
);

  localparam [3:0] START = 4'd0, PARITY = 4'd9, STOP = 4'd10;

  reg       active;
  reg [5:0] cycle;
  reg [7:0] byte_reg;
  reg [1:0] mode_reg;
  reg       level;
  wire [3:0] slot = cycle[5:2];

  always @* begin
    if (slot == START)       level = 1'b0;
    else if (slot == PARITY) level = (mode_reg == 2'd3) | ((mode_reg == 2'd1) ^ (^byte_reg));
    else if (slot >= STOP)   level = 1'b1;
    else                     level = byte_reg[slot - 1];
  end

  assign busy = active;
  assign tx = level | ~active;

  always @(posedge clk)
    if (reset) begin
      active <= 1'b0;
    end else if (active) begin
      if (cycle == 6'd43)                              active <= 1'b0;
      else if (cycle == 6'd35 && mode_reg == 2'd0)     cycle <= 6'd40;
      else                                             cycle <= cycle + 6'd1;
    end else if (start) begin
      active <= 1'b1;
      cycle <= 6'd0;
      byte_reg <= data;
      mode_reg <= parity_mode;
    end

endmodule
