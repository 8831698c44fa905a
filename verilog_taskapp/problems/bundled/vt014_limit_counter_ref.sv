// Reference of vt014_limit_counter: up/down counter between limits.
module RefModule (
  input  logic       clk,
  input  logic       areset,
  input  logic       load,
  input  logic [7:0] value,
  input  logic       enable,
  input  logic       up,
  input  logic       wrap,
  input  logic [7:0] lo,
  input  logic [7:0] hi,
  output logic [7:0] count,
  output logic       at_limit
);

  assign at_limit = up ? (count >= hi) : (count <= lo);

  always_ff @(posedge clk or posedge areset) begin
    if (areset)
      count <= 8'd0;
    else if (load)
      count <= (value < lo) ? lo : (value > hi) ? hi : value;
    else if (enable) begin
      if (at_limit)
        count <= (up == wrap) ? lo : hi;
      else
        count <= up ? count + 8'd1 : count - 8'd1;
    end
  end

endmodule
